import { agents } from './agents.ts'
import { audit } from './audit.ts'
import { branding } from './branding.ts'
import { collections } from './collections.ts'
import { device } from './device.ts'
import { directory } from './directory.ts'
import { files } from './files.ts'
import { installer } from './installer.ts'
import { keys } from './keys.ts'
import { models } from './models.ts'
import { playground } from './playground.ts'
import { quotas } from './quotas.ts'
import { sessions } from './sessions.ts'
import { settings } from './settings.ts'
import { shell } from './shell.ts'
import { speech } from './speech.ts'
import { start } from './start.ts'
import { traffic } from './traffic.ts'
import { translations } from './translations.ts'
import { usage } from './usage.ts'
import { voice } from './voice.ts'

export const en = {
  ...shell,
  ...start,
  ...playground,
  ...models,
  ...installer,
  ...keys,
  ...directory,
  ...device,
  ...usage,
  ...speech,
  ...voice,
  ...settings,
  ...translations,
  ...branding,
  ...quotas,
  ...files,
  ...collections,
  ...traffic,
  ...agents,
  ...audit,
  ...sessions,
}
