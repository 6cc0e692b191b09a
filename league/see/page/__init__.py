"""The web page of runs: reads run folders beside their daemons, and hands operations to the control door."""
