import { Type } from '@sinclair/typebox'
import { reloading, section, whole } from '#config/keys.ts'

/** The keys of files. */
export const filesKeys = {
  files: section('Files and folders.', {
    bytesMax: reloading(
      whole('Maximum file size.', {
        default: 5_368_709_120,
        minimum: 1,
        maximum: 5_497_558_138_880,
        env: 'SLUICE_FILE_BYTES_MAX',
      }),
    ),
    perOwnerMax: whole('Maximum files and folders per user.', {
      default: 1_000_000,
      minimum: 1,
    }),
    uploadMs: whole('Timeout of a request body.', { default: 3_600_000, minimum: 1_000 }),
    uploadGapMs: whole(
      'Time without data after which a request body is refused with 408; a JSON body of at most 4 KB must be complete by then.',
      {
        default: 30_000,
        minimum: 100,
      },
    ),
    uploadsMax: whole('Concurrent uploads per worker; a quarter of them per user.', {
      default: 64,
      minimum: 1,
    }),
    trashS: reloading(
      whole('How long deleted files can be restored.', {
        default: 2_592_000,
        minimum: 0,
        maximum: 315_360_000,
        env: 'SLUICE_FILE_TRASH_S',
      }),
    ),
    peoplePicker: reloading(
      Type.Boolean({
        description: 'Whether callers may search for users and groups to share with.',
        default: true,
      }),
    ),
  }),
}
