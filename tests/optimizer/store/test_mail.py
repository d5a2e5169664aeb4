from optimizer.store import Backlog, Delivery, Effect, NewCommand, Store


def test_the_backlog_counts_what_waits_and_since_when(store: Store) -> None:
    for number in (1, 2, 3):
        arrival = Delivery(id=f"d{number}", event="push", body="{}", received_at=10.0 * number)
        store.receive(arrival)
        store.post(Effect(key=f"e{number}", kind="react", payload="{}"), now=5.0 * number)
        command = NewCommand(
            comment_id=number, line=1, number=7, author_id=1, author="ann", text="/status"
        )
        store.note_command(command, now=1.0)
    first, second, _ = store.due_effects(now=100.0)
    store.handle_delivery("d1", now=40.0)
    store.end_effect(first.id, now=41.0)
    store.end_effect(second.id, now=42.0, error="refused")
    store.change_command(1, state="done", told="", now=43.0)

    assert store.backlog() == Backlog(
        deliveries=2,
        oldest_delivery_at=20.0,
        commands=2,
        effects=1,
        oldest_effect_at=15.0,
        given_up=1,
    )


def test_nothing_waits_in_an_empty_store(store: Store) -> None:
    assert store.backlog() == Backlog(
        deliveries=0,
        oldest_delivery_at=None,
        commands=0,
        effects=0,
        oldest_effect_at=None,
        given_up=0,
    )
