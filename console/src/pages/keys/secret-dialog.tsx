import type { CreatedApiKey } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/code.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Notice } from '../../ui/notice.tsx'

/** The only time that a secret is shown. */
export function SecretDialog({
  created,
  onClose,
}: {
  created: CreatedApiKey
  onClose: () => void
}) {
  return (
    <Dialog
      title={text('keys.secret_title', { name: created.name })}
      onClose={onClose}
      onSubmit={onClose}
      actions={
        <Button kind="primary" type="submit">
          {text('action.done')}
        </Button>
      }
    >
      <Notice kind="warn">{text('keys.secret_hint')}</Notice>
      <CodeBlock code={created.key} label={text('keys.secret')} />
    </Dialog>
  )
}
