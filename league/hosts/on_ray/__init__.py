"""The runtime on Ray: the cluster and its machines, the processes of hosts, and tasks that any machine may do."""
