import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { announceEnd, awaitDataFolder, lockDataFolder } from '#db/data-folder.ts'
import { quietLog } from '#test/support/quiet-log.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-folder-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const never = { lockedMs: 0, endingMs: 0 }
const forEnding = { lockedMs: 0, endingMs: 3_600_000 }

test('a locked folder is waited for while its process announces its end', async () => {
  const first = lockDataFolder(folder)
  announceEnd(folder)
  await expect(awaitDataFolder(folder, never, quietLog)).rejects.toThrow('is in use by')
  const waiting = awaitDataFolder(folder, forEnding, quietLog)
  first.release()
  const second = await waiting
  // The announcement was that of the former process.
  await expect(awaitDataFolder(folder, forEnding, quietLog)).rejects.toThrow('is in use by')
  second.release()
})

test('a locked folder is waited for when its process may have been orphaned', async () => {
  const first = lockDataFolder(folder)
  const wait = { lockedMs: 3_600_000, endingMs: 0 }
  const waiting = awaitDataFolder(folder, wait, quietLog)
  first.release()
  ;(await waiting).release()
})
