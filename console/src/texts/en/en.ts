import { installer } from './installer.ts'
import { models } from './models.ts'
import { playground } from './playground.ts'
import { shell } from './shell.ts'
import { start } from './start.ts'

export const en = { ...shell, ...start, ...playground, ...models, ...installer }
