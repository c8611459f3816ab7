import { test as bunTest, describe, expect } from 'bun:test'
import type { TransportKind } from '#inference/transport/create-transport.ts'
import { type Gap, gaps } from './gaps.ts'
import { openTransport } from './transport-client.ts'

type DefineTest = (name: string, body: () => Promise<void> | void) => void

type Tested = {
  readonly kind: TransportKind
  readonly openTransport: (
    options?: Parameters<typeof openTransport>[1],
  ) => ReturnType<typeof openTransport>
  /** That of `bun:test`, but for the gaps of this transport. */
  readonly test: DefineTest
  readonly testOnLinux: DefineTest
  /** The maximum of open descriptors in a test process. */
  readonly streamsAtOnce: number
}

const kinds: readonly TransportKind[] = ['socket', 'fetch']
/** Bun's `fetch` runs 256 requests at a time; the supervisor raises that for its workers. */
const streamsAtOnce = { socket: 1_000, fetch: 250 }

/** Defines the tests of a file for each transport. `gaps.ts` lists the exceptions. */
export function overEachTransport(file: string, define: (tested: Tested) => void): void {
  describe.each(kinds)('over %s', (kind) => {
    const unmet = new Map(Object.entries(gaps[kind][file] ?? {}))
    const testWhere =
      (isHere: boolean): DefineTest =>
      (name, body) => {
        const gap = unmet.get(name)
        unmet.delete(name)
        if (gap === undefined) bunTest.skipIf(!isHere)(name, body)
        else defineGap(gap, name, body)
      }
    define({
      kind,
      openTransport: (options) => openTransport(kind, options),
      test: testWhere(true),
      testOnLinux: testWhere(process.platform === 'linux'),
      streamsAtOnce: streamsAtOnce[kind],
    })
    bunTest('each gap is that of a test', () => {
      expect([...unmet.keys()]).toEqual([])
    })
  })
}

function defineGap({ why, run }: Gap, name: string, body: () => Promise<void> | void): void {
  const named = `${name} (not so: ${why})`
  if (run === 'fails') bunTest.failing(named, body)
  else bunTest.skip(named, body)
}
