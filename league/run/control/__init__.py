"""Starting, stopping and operating runs from outside their daemon."""
