"""The schema's revisions, run by `optimizer.store.engine.upgrade`."""
