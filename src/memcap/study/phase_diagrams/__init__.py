"""The paper's phase diagrams of token retrieval, as checked-in grids that the study machinery runs."""
