ALTER TABLE "api_key" ADD COLUMN "models" text[];--> statement-breakpoint
ALTER TABLE "api_key" ADD COLUMN "scopes" text[];--> statement-breakpoint
ALTER TABLE "api_key" ADD COLUMN "limits" text;--> statement-breakpoint
ALTER TABLE "api_key" ADD COLUMN "rotated_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "api_key" ADD COLUMN "previous_hash" "bytea";--> statement-breakpoint
ALTER TABLE "api_key" ADD COLUMN "previous_expires_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_previous_hash_unique" UNIQUE("previous_hash");
