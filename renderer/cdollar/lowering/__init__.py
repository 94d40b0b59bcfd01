"""Checks the bodies of a program's functions and lowers them to DAG nodes: functions over one `Body` each."""
