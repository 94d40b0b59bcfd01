"""Gradients of DAGs: derivatives of operations, reverse mode over bound variables, tangents of device functions."""
