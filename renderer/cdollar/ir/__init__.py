"""The intermediate representation: types, operations, the DAG and passes over it."""
