import { flag, reloading, section, whole } from '#config/keys.ts'

/** The keys of the usage ledger. */
export const usageKeys = {
  usage: section('Usage ledger: who used which model, and how much.', {
    enabled: flag('Whether calls are recorded.', true),
    retentionDays: reloading(
      whole('How long single records are kept.', {
        default: 90,
        minimum: 1,
        maximum: 36_500,
      }),
    ),
    rollupRetentionDays: reloading(
      whole('How long hourly sums are kept.', {
        default: 730,
        minimum: 1,
        maximum: 36_500,
      }),
    ),
  }),
}
