import { flag, section } from '#config/keys.ts'

/** The keys of the documentation. */
export const docsKeys = {
  docs: section('API documentation: /docs, /scalar and /openapi.json.', {
    enabled: flag('Whether the documentation is served.', true),
    requireAuth: flag(
      'Whether /openapi.json requires can_access_api. The pages contain no data and prompt for a credential.',
      false,
    ),
  }),
}
