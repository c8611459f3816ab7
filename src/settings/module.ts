import { type Foundation, module } from '#module.ts'
import type { SettingReferences } from './editing.ts'
import { settingsEndpoints } from './endpoints.ts'

/** Configuration that administrators change while the system runs. */
export const settingsModule = module({
  name: 'settings',
  endpoints: (services: Foundation & SettingReferences) => settingsEndpoints(services),
})
