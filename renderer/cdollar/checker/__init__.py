"""Syntax trees to a DAG of functional operations: types, overloads, domains."""
