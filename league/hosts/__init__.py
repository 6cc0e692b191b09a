"""The runtimes of actors and learners: in this process, or on Ray."""
