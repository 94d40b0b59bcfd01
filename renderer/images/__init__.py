"""Work on finished pictures: tone mapping, grading, denoising, comparison, and pictures of algorithms' steps."""
