"""Pictures of games: each state as text and as a short list of shapes, of which SVG and images are made."""
