"""Tone mapping and denoising of finished pictures."""
