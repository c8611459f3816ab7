import { withTimeLimit } from '#lib/time-limit.ts'
import { database } from './checks/database.ts'
import { engines } from './checks/engines.ts'
import { folders } from './checks/folders.ts'
import { listening } from './checks/listening.ts'
import { machine } from './checks/machine.ts'
import { storage } from './checks/storage.ts'
import { tokens } from './checks/tokens.ts'
import { upstreams } from './checks/upstreams.ts'
import { type Finding, fail } from './finding.ts'
import { reasonOf } from './format.ts'
import type { CheckGroup, World } from './world.ts'

/** In the order of the report. */
const groups: readonly CheckGroup[] = [
  machine,
  listening,
  folders,
  database,
  storage,
  tokens,
  upstreams,
  engines,
]

/** Runs all checks concurrently. A failing check becomes a finding. */
export async function examine(world: World): Promise<readonly Finding[]> {
  const found = await Promise.all(groups.map((group) => runGroup(group, world)))
  return found.flat()
}

async function runGroup(group: CheckGroup, world: World): Promise<readonly Finding[]> {
  const limitMs = group.limitMs(world)
  const stop = new AbortController()
  try {
    return await withTimeLimit(group.check(world, stop.signal), limitMs, () => {
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
