"""The league's rules as a pure state machine: standard library and numpy only, no clock, no files, no global randomness."""
