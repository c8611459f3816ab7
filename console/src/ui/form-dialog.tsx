import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { text } from '../texts/texts.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { Fault } from './notice.tsx'
import { useAction } from './query.ts'

/** A dialog with fields: submits once at a time, and shows why a submit was refused. */
export function FormDialog({
  title,
  submit,
  canSubmit = true,
  wide = false,
  onSubmit,
  onRefused,
  onClose,
  children,
}: {
  title: string
  /** The verb of the button: "Create". */
  submit: string
  canSubmit?: boolean
  wide?: boolean
  /** Closes the dialog itself when it has succeeded; throws an `ApiError` otherwise. */
  onSubmit: () => Promise<unknown>
  /** Gets why a submit was refused, to show it at a field too; undefined when the next one starts. */
  onRefused?: (error: unknown) => void
  onClose: () => void
  children: ComponentChildren
}) {
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const send = () =>
    run(async () => {
      setFault(undefined)
      onRefused?.(undefined)
      try {
        await onSubmit()
      } catch (error) {
        setFault(error)
        onRefused?.(error)
      }
    })
  return (
    <Dialog
      title={title}
      wide={wide}
      onClose={onClose}
      onSubmit={() => {
        if (canSubmit) void send()
      }}
      actions={
        <>
          <Button onClick={onClose}>{text('action.cancel')}</Button>
          <Button kind="primary" type="submit" disabled={isBusy || !canSubmit}>
            {submit}
          </Button>
        </>
      }
    >
      {children}
      {fault !== undefined && <Fault error={fault} />}
    </Dialog>
  )
}
