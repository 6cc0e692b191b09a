"""The return estimators against golden values of several reference implementations, in float32."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from league.agents.losses.returns import gae, upgo
from league.agents.losses.vtrace import vtrace
from league.agents.nets.kernels.distributions import categorical_log_prob
from tests.oracles.returns import n_step_column

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "vtrace.json").read_text())
CASES = {case["name"]: case for case in GOLDEN["cases"]}
TRUNCATION = GOLDEN["truncation_cases"][0]


def floats(numbers: Any) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float32)


def assert_golden(actual: Tensor, expected: Any) -> None:
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual, floats(expected), rtol=1e-6, atol=1e-6)


def returns_inputs(case: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    inputs = case["inputs"]
    discounts = case["gamma"] * (1.0 - floats(inputs["dones"]))
    return discounts, floats(inputs["rewards"]), floats(inputs["values"]), floats(inputs["bootstrap_value"])


@pytest.mark.parametrize("name", CASES)
def test_log_ratios_of_masked_logits_equal_the_golden_ones(name: str) -> None:
    inputs = CASES[name]["inputs"]
    actions = torch.tensor(inputs["actions"])
    log_rhos = categorical_log_prob(floats(inputs["target_logits"]), actions) - categorical_log_prob(
        floats(inputs["behaviour_logits"]), actions
    )
    torch.testing.assert_close(log_rhos, floats(CASES[name]["expected"]["log_rhos"]), rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize("name", CASES)
def test_vtrace_equals_golden(name: str) -> None:
    case = CASES[name]
    result = vtrace(
        floats(case["expected"]["log_rhos"]),
        *returns_inputs(case),
        clip_rho=case["rho_bar"],
        clip_c=case["c_bar"],
        clip_pg_rho=case["pg_rho_bar"],
        lambda_=case["vtrace_lambda"],
    )
    assert_golden(result.targets, case["expected"]["vs"])
    assert_golden(result.advantages, case["expected"]["pg_advantages"])


@pytest.mark.parametrize("name", CASES)
def test_with_ratios_of_1_the_golden_cases_are_n_step_returns(name: str) -> None:
    discounts, rewards, values, bootstrap = returns_inputs(CASES[name])
    result = vtrace(torch.zeros_like(values), discounts, rewards, values, bootstrap)
    for column in range(values.shape[1]):
        numbers = [part[:, column].double().tolist() for part in (discounts, rewards, values)]
        targets, advantages = n_step_column(*numbers, float(bootstrap[column]))
        assert_golden(result.targets[:, column], targets)
        assert_golden(result.advantages[:, column], advantages)


@pytest.mark.parametrize("name", CASES)
def test_gae_and_its_value_targets_equal_golden(name: str) -> None:
    case = CASES[name]
    advantages, (_, _, values, _) = gae(*returns_inputs(case), lambda_=case["gae_lambda"]), returns_inputs(case)
    assert_golden(advantages, case["expected"]["gae_advantages"])
    assert_golden(advantages + values, case["expected"]["td_lambda_targets"])


@pytest.mark.parametrize("name", CASES)
def test_upgo_equals_golden(name: str) -> None:
    case = CASES[name]
    result = upgo(floats(case["expected"]["log_rhos"]), *returns_inputs(case))
    assert_golden(result.returns, case["expected"]["upgo_returns"])
    assert_golden(result.advantages, case["expected"]["upgo_advantages"])


def with_markers(column: int) -> tuple[dict[str, Tensor], list[int]]:
    """One column of the truncation case in our form: a marker with V of the final observation after each truncation."""
    inputs = TRUNCATION["inputs"]
    rows: list[tuple[float, float, float, float, bool]] = []
    places = []
    for t in range(TRUNCATION["T"]):
        terminated, done = inputs["terminated"][t][column], inputs["dones"][t][column]
        log_rho = inputs["log_pi"][t][column] - inputs["log_mu"][t][column]
        discount = 0.0 if terminated else TRUNCATION["gamma"]
        places.append(len(rows))
        rows.append((log_rho, discount, inputs["rewards"][t][column], inputs["values"][t][column], True))
        if done and not terminated:
            rows.append((5.0, TRUNCATION["gamma"], 77.0, inputs["next_values"][t][column], False))
    names = ("log_rhos", "discounts", "rewards", "values")
    tensors = {name: floats([row[i] for row in rows])[:, None] for i, name in enumerate(names)}
    tensors["valid"] = torch.tensor([row[4] for row in rows])[:, None]
    tensors["bootstrap_value"] = floats([inputs["next_values"][-1][column]])
    return tensors, places


@pytest.mark.parametrize("column", range(TRUNCATION["B"]))
def test_truncation_in_mid_sequence_bootstraps_from_its_own_final_observation(column: int) -> None:
    tensors, places = with_markers(column)
    result = vtrace(**tensors)
    expected = TRUNCATION["expected"]
    assert_golden(result.targets[places, 0], [row[column] for row in expected["vs"]])
    assert_golden(result.advantages[places, 0], [row[column] for row in expected["pg_advantages"]])
    del tensors["log_rhos"]
    advantages = gae(**tensors, lambda_=TRUNCATION["gae_lambda"])
    assert_golden(advantages[places, 0], [row[column] for row in expected["gae_advantages"]])
