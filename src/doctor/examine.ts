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
import { reasonOf } from './words.ts'
import type { CheckGroup, World } from './world.ts'

/** In the order in which they are told. */
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

/** All checks, side by side; none of them can fail as a whole. */
export async function examine(world: World): Promise<readonly Finding[]> {
  const found = await Promise.all(groups.map((group) => runGroup(group, world)))
  return found.flat()
}

async function runGroup(group: CheckGroup, world: World): Promise<readonly Finding[]> {
  const limitMs = group.limitMs(world)
  const stop = new AbortController()
  try {
    return await withTimeLimit(group.check(world, stop.signal), limitMs, () => {
      return new Error(`it takes longer than ${limitMs} ms`)
    })
  } catch (error) {
    return [fail(group.name, reasonOf(error), 'Look whether this machine or what is asked hangs.')]
  } finally {
    stop.abort()
  }
}
