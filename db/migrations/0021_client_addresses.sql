ALTER TABLE "audit_entry" ADD COLUMN "client_address" text;--> statement-breakpoint
ALTER TABLE "api_key" ADD COLUMN "allowed_ips" text[];