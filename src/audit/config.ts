import { reloading, section, whole } from '#config/keys.ts'

/** The keys of the audit log. */
export const auditKeys = {
  audit: section('Audit log of administrative changes.', {
    keepDays: reloading(
      whole('How long entries are kept.', { default: 365, minimum: 1, maximum: 36_500 }),
    ),
  }),
}
