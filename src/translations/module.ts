import type { Auth } from '#auth/auth.ts'
import { type Foundation, module } from '#module.ts'
import { translationRoutes } from './routes.ts'
import { createTranslations, type Translations } from './translations.ts'

/** Texts in place of the portal's own. */
export const translationsModule = module({
  name: 'translations',
  start: ({ config, database, now }: Foundation) => ({
    services: {
      translations: createTranslations(database, { settings: config.translations, now }),
    },
  }),
  routes: (services: Foundation & { auth: Auth; translations: Translations }) => [
    translationRoutes(services),
  ],
})
