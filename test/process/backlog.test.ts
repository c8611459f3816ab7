import { afterEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Listener, openListener } from '#listener.ts'
import { quietLog } from '#test/support/quiet-log.ts'

/** More than twice the backlog that Bun asks for: half of them seem established to their client. */
const wanted = 1_500
const program = join(import.meta.dir, '../support/connecting-program/program.ts')

let listener: Listener | undefined

afterEach(() => listener?.close())

function kernelAllows(connections: number): boolean {
  if (process.platform !== 'linux') return false
  return Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8')) >= connections
}

test.if(kernelAllows(wanted))(
  'a burst of connections waits to be accepted while the worker is busy',
  () => {
    listener = openListener({
      listen: (port = 0) =>
        Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response('ok') }),
      closeIdleUpstream() {},
      log: quietLog,
    })
    const result = join(mkdtempSync(join(tmpdir(), 'sluice-backlog-')), 'established')
    const child = Bun.spawn([
      process.execPath,
      program,
      String(listener.port),
      String(wanted),
      result,
    ])
    // Blocks this process, so that it accepts nothing.
    while (!existsSync(result)) Bun.sleepSync(20)
    child.kill()
    expect(readFileSync(result, 'utf8')).toBe(String(wanted))
  },
)
