"""Asks a served policy for the first move of Connect Four: play.py ADDRESS TOKEN."""

import sys

from league.deploy.serving.client import PolicyClient

with PolicyClient(sys.argv[1], token=sys.argv[2]) as policy:
    shape, _ = policy.facts()["observations"]["board"]
    board = [[[0] * shape[2] for _ in range(shape[1])] for _ in range(shape[0])]
    policy.reset()  # at the start of every game
    print(policy.act({"board": board}, mask=[1] * 7))
