#!/usr/bin/env python3
"""Fenced publication with psycopg2:

    publish.py [--ttl SECONDS] DATABASE ID COMMAND [ARGUMENT...]          (Debian: python3-psycopg2)

Claims the row ID of app.source, runs COMMAND, and publishes each line that it writes as an item of the row: all of them,
or none. Ends with status 0 only when they are published. COMMAND may take as long as it wants: a thread renews the claim
meanwhile, on a connection of its own, and ends COMMAND when the claim is lost.
"""

import argparse
import subprocess
import sys
import threading
import uuid

import psycopg2


class NotPublished(Exception):
    pass


def claim(db, row, ttl):
    with db, db.cursor() as cursor:
        cursor.execute(
            "SELECT result, message, attempt, encode(token, 'hex') FROM tenure.claim_row('app.source', 'id', %s,"
            " soft_delete => 'deleted_at', ttl => make_interval(secs => %s))", (row, ttl))
        result, message, attempt, token = cursor.fetchone()
    if result != "ok":
        raise NotPublished(f"{result}: {message}")
    return attempt, token


def show_token(cursor, token):
    """For the rest of the transaction. Never in a statement that may fail: the server logs those."""
    cursor.execute("SELECT set_config('tenure.token', %s, true)", (token,))


def renew(db, attempt, token):
    with db, db.cursor() as cursor:
        show_token(cursor, token)
        cursor.execute("SELECT result, message FROM tenure.renew(%s)", (attempt,))
        return cursor.fetchone()


def heartbeat(dsn, attempt, token, ttl, done, on_loss):
    """Renews every third of the ttl. Only an answer proves a loss; whatever else goes wrong is tried again, sooner."""
    db, pause = None, ttl / 3
    while not done.wait(pause):
        try:
            db = db or psycopg2.connect(dsn)
            result, message = renew(db, attempt, token)
        except psycopg2.Error:
            db, pause = None, ttl / 20
            continue
        if result in ("retired", "lapsed"):
            print(f"publish.py: {message}", file=sys.stderr)
            on_loss()
            return
        pause = ttl / 3 if result == "ok" else ttl / 20


def collect(command, *lease):
    """Minutes, without any transaction."""
    done = threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        thread = threading.Thread(target=heartbeat, args=(*lease, done, process.terminate), daemon=True)
        thread.start()
        items = process.stdout.read().splitlines()
    done.set()
    thread.join()
    if process.returncode != 0:
        raise NotPublished(f"{command[0]} ended with status {process.returncode}")
    return items


def publish(db, attempt, token, nonce, row, items):
    """One short transaction: all of it, or none."""
    with db, db.cursor() as cursor:
        show_token(cursor, token)
        cursor.execute("SELECT tenure.publication_begin(%s)", (attempt,))
        cursor.execute("DELETE FROM app.item WHERE source = %s", (row,))
        cursor.executemany("INSERT INTO app.item (source, value) VALUES (%s, %s)", [(row, item) for item in items])
        cursor.execute("SELECT tenure.publication_end(%s, nonce => %s)", (attempt, nonce))


def was_published(dsn, attempt, token, nonce, why):
    """On a new connection, as the answer of the COMMIT may be what was lost. If it was not: the claim ends with why."""
    db = psycopg2.connect(dsn)
    with db, db.cursor() as cursor:
        show_token(cursor, token)
        cursor.execute("SELECT result = 'ok' FROM tenure.settle_ask(%s, NULL, %s)", (attempt, nonce))
        published, = cursor.fetchone()
        if not published:
            cursor.execute("SELECT tenure.fail(%s, NULL, %s)", (attempt, why))
    return published


def run(dsn, row, ttl, command):
    db = psycopg2.connect(dsn)
    attempt, token = claim(db, row, ttl)
    nonce = uuid.uuid4().hex
    try:
        items = collect(command, dsn, attempt, token, ttl)
        publish(db, attempt, token, nonce, row, items)
    except (NotPublished, OSError, psycopg2.Error) as error:
        if not was_published(dsn, attempt, token, nonce, str(error)):
            raise


def main():
    parser = argparse.ArgumentParser(description="Publish what a command collects for a row of app.source.")
    parser.add_argument("--ttl", type=float, default=180, metavar="SECONDS")
    parser.add_argument("database")
    parser.add_argument("id")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("a COMMAND must follow the ID")
    try:
        run(options.database, options.id, options.ttl, options.command)
    except (NotPublished, OSError, psycopg2.Error) as error:
        sys.exit(f"publish.py: nothing was published: {error}")


if __name__ == "__main__":
    main()
