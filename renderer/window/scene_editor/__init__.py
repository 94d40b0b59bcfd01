"""The editor of ray traced scenes: the list of items, the properties of the selected one, its gizmo in the picture."""
