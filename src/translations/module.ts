import { type Foundation, module } from '#module.ts'
import { translationEndpoints } from './endpoints.ts'
import { createTranslations, type Translations } from './store.ts'

/** Overrides of the portal's texts. */
export const translationsModule = module({
  name: 'translations',
  tags: { Translations: 'Overrides of interface texts.' },
  start: ({ config, database, now }: Foundation) => ({
    services: {
      translations: createTranslations(database, { settings: config.translations, now }),
    },
  }),
  endpoints: (services: { translations: Translations }) => translationEndpoints(services),
})
