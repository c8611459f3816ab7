import { type Foundation, module } from '#module.ts'
import { type SettingsEndpointsDeps, settingsEndpoints } from './endpoints.ts'

/** Configuration that administrators change while the system runs. */
export const settingsModule = module({
  name: 'settings',
  tags: { Configuration: 'Settings that administrators change at run time.' },
  endpoints: (services: Foundation & SettingsEndpointsDeps) => settingsEndpoints(services),
})
