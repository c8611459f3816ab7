import { createBranding } from '#branding/branding.ts'
import { createSealer } from '#sealing/sealer.ts'
import { createTranslations } from '#translations/translations.ts'
import type { World } from './world.ts'

/** What clients keep for us, and how the portal looks and reads. */
export async function composePortal({ config, database, clock }: World) {
  const { now } = clock
  const sealer = await createSealer({ sealKeys: config.sealKeys, database })
  return {
    sealer,
    translations: createTranslations(database, { settings: config.translations, now }),
    branding: createBranding(database, { settings: config.branding, sealer, now }),
  }
}
