import { withTimeLimit } from '#lib/time-limit.ts'
import { modules } from '#modules.ts'
import type { CheckGroup, CheckInputs } from './check.ts'
import { database } from './database.ts'
import { type Finding, fail } from './finding.ts'
import { folders } from './folders.ts'
import { reasonOf } from './format.ts'
import { listening } from './listening.ts'
import { machine } from './machine.ts'

/** In the order of the report. */
const groups: readonly CheckGroup[] = [
  machine,
  listening,
  folders,
  database,
  ...modules.flatMap(({ doctor }) => doctor ?? []),
]

/** Runs all checks concurrently. A failing check becomes a finding. */
export async function examine(inputs: CheckInputs): Promise<readonly Finding[]> {
  const found = await Promise.all(groups.map((group) => runGroup(group, inputs)))
  return found.flat()
}

async function runGroup(group: CheckGroup, inputs: CheckInputs): Promise<readonly Finding[]> {
  const limitMs = group.limitMs(inputs)
  const stop = new AbortController()
  try {
    return await withTimeLimit(group.check(inputs, stop.signal), limitMs, () => {
      return new Error(`no result within ${limitMs} ms`)
    })
  } catch (error) {
    return [
      fail(
        group.name,
        reasonOf(error),
        'Check whether this machine or the checked service is overloaded.',
      ),
    ]
  } finally {
    stop.abort()
  }
}
