"""The league's rules as a pure state machine: standard library and numpy only, no clock, file or global chance."""
