"""What cases share: backends and cases, benches, golden data, fake machines."""
