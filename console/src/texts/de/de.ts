import type { Dictionary } from '../texts.ts'
import { installer } from './installer.ts'
import { models } from './models.ts'
import { playground } from './playground.ts'
import { shell } from './shell.ts'
import { start } from './start.ts'

export const de: Dictionary = { ...shell, ...start, ...playground, ...models, ...installer }
