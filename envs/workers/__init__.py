"""Games stepped in child processes, so that slow ones use all cores and unsafe ones harm only themselves."""
