import { afterEach, expect, test } from 'bun:test'
import { stopProcesses } from '#test/support/process.ts'
import { describeViolations } from './record.ts'
import { simulate } from './simulation.ts'
import { postgresPrograms } from './site/own-postgres.ts'

afterEach(stopProcesses)

/** A minute and a half with the settling time after the faults; `bun run simulate` runs other seeds. */
const seed = 22
const operations = 120

test.skipIf(postgresPrograms() === null)(
  'everything acknowledged survives crashes, and nothing is left over',
  async () => {
    const lines: string[] = []
    const book = await simulate({ seed, operations, print: (line) => lines.push(line) })
    const report = book === null ? 'skipped' : describeViolations(book)
    expect(report, `seed ${seed}\n${lines.join('\n')}`).toBe('')
  },
)
