import subprocess
import sys
import time

from optimizer.processor_time import count_cpu_s


def test_what_a_child_computes_is_counted_while_it_lives_and_after() -> None:
    before_s = count_cpu_s()
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    until_s = time.monotonic() + 60
    while count_cpu_s() < before_s + 0.3 and time.monotonic() < until_s:
        time.sleep(0.05)
    alive_s = count_cpu_s()
    child.kill()
    child.wait()

    assert alive_s >= before_s + 0.3
    assert count_cpu_s() >= alive_s
