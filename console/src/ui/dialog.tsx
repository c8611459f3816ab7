import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { text } from '../texts/texts.ts'
import { Button } from './button.tsx'

/** A modal; Escape closes it, and the focus returns to where it was. */
export function Dialog({
  title,
  wide = false,
  onClose,
  onSubmit,
  children,
  actions,
}: {
  title: string
  wide?: boolean
  onClose: () => void
  onSubmit?: () => void
  children: ComponentChildren
  actions?: ComponentChildren
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  // Before anything can be clicked: what lies behind is not meant any more.
  useLayoutEffect(() => {
    const before = document.activeElement
    const element = dialog.current
    element?.showModal()
    // The first field, or the answer that changes nothing; not the button that closes.
    const field = element?.querySelector<HTMLElement>('.dialog-body :is(input, select, textarea)')
    const start = field ?? element?.querySelector<HTMLElement>('.dialog-foot .button')
    start?.focus()
    return () => {
      element?.close()
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      class={wide ? 'wide' : ''}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onSubmit?.()
        }}
      >
        <div class="dialog-head">
          <h2 id={id}>{title}</h2>
          <Button
            kind="quiet"
            size="small"
            icon="cross"
            label={text('action.close')}
            onClick={onClose}
          />
        </div>
        <div class="dialog-body">{children}</div>
        {actions !== undefined && <div class="dialog-foot">{actions}</div>}
      </form>
    </dialog>
  )
}
