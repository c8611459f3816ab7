import { flag, section } from '#config/keys.ts'

/** The keys of branding. */
export const brandingKeys = {
  branding: section('Appearance of the web interface.', {
    enforceContrast: flag('Whether themes with insufficient contrast are rejected.', false),
  }),
}
