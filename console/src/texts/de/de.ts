import type { Dictionary } from '../texts.ts'
import { device } from './device.ts'
import { directory } from './directory.ts'
import { installer } from './installer.ts'
import { keys } from './keys.ts'
import { models } from './models.ts'
import { playground } from './playground.ts'
import { shell } from './shell.ts'
import { start } from './start.ts'
import { usage } from './usage.ts'

export const de: Dictionary = {
  ...shell,
  ...start,
  ...playground,
  ...models,
  ...installer,
  ...keys,
  ...directory,
  ...device,
  ...usage,
}
