"""GitHub behind `daemon.forge`: the only package that knows how GitHub puts things."""
