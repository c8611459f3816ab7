import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stopProcesses } from '#test/support/process.ts'
import { postgresPrograms } from '../site/own-postgres.ts'
import { rollAndRollBack } from './rolling.ts'
import { makeNextVersion, thisVersion } from './versions.ts'

let folder: string | undefined

afterEach(async () => {
  await stopProcesses()
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
})

/** `bun run simulate:upgrade` does the same with 200, also with an earlier revision. */
const streams = 20

test.skipIf(postgresPrograms() === null)(
  'a rolling upgrade to a version with another migration, and the rollback, lose no request',
  async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-upgrade-'))
    const next = makeNextVersion(join(folder, 'next'))
    const lines: string[] = []
    const print = (line: string) => lines.push(line)
    const report = await rollAndRollBack({ previous: thisVersion, next, folder, streams, print })
    expect(report?.lost, lines.join('\n')).toEqual([])
    expect(Object.values(report?.phases ?? {}).every((count) => count >= streams)).toBe(true)
  },
)
