import { flag, section } from './keys.ts'

/** The keys about the documentation. */
export const docsKeys = {
  docs: section('The documentation: /docs, /scalar and /openapi.json.', {
    enabled: flag('Whether it is served at all.', true),
    requireAuth: flag(
      'Whether /openapi.json wants a credential; the pages, which hold nothing by themselves, ask for it.',
      false,
    ),
  }),
}
