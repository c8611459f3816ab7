import { flag, section } from '#config/keys.ts'

/** The keys of the console. */
export const consoleKeys = {
  console: section('The web page of the gateway, under /console/.', {
    enabled: flag('Whether the console is served.', true),
  }),
}
