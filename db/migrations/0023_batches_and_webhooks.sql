CREATE TABLE "batch" (
	"id" text PRIMARY KEY NOT NULL,
	"owner_id" uuid NOT NULL,
	"key_id" text,
	"groups" text NOT NULL,
	"request_id" text NOT NULL,
	"endpoint" text NOT NULL,
	"headers" text,
	"input_file_id" uuid,
	"input_sha256" text NOT NULL,
	"input_bytes" bigint NOT NULL,
	"metadata" text,
	"output_lifetime_s" integer,
	"status" text NOT NULL,
	"ending" text,
	"errors" text,
	"model" text,
	"total" integer DEFAULT 0 NOT NULL,
	"completed" integer DEFAULT 0 NOT NULL,
	"failed" integer DEFAULT 0 NOT NULL,
	"input_tokens" bigint DEFAULT 0 NOT NULL,
	"cached_tokens" bigint DEFAULT 0 NOT NULL,
	"output_tokens" bigint DEFAULT 0 NOT NULL,
	"reasoning_tokens" bigint DEFAULT 0 NOT NULL,
	"output_file_id" uuid,
	"error_file_id" uuid,
	"results_sha256" text,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"in_progress_at" timestamp with time zone,
	"finalizing_at" timestamp with time zone,
	"cancelling_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	CONSTRAINT "batch_status" CHECK ("batch"."status" in ('validating', 'in_progress', 'finalizing', 'cancelling', 'completed', 'failed', 'expired', 'cancelled'))
);
--> statement-breakpoint
CREATE TABLE "batch_line" (
	"batch_id" text NOT NULL,
	"line" integer NOT NULL,
	"slot" smallint NOT NULL,
	"custom_id" text NOT NULL,
	"start_byte" bigint NOT NULL,
	"bytes" integer NOT NULL,
	"answer" text,
	"outcome" text,
	CONSTRAINT "batch_line_batch_id_line_pk" PRIMARY KEY("batch_id","line")
);
--> statement-breakpoint
CREATE TABLE "webhook_delivery" (
	"id" text PRIMARY KEY NOT NULL,
	"endpoint_id" text NOT NULL,
	"event_id" text NOT NULL,
	"event_type" text NOT NULL,
	"payload" text NOT NULL,
	"status" text NOT NULL,
	"is_test" boolean DEFAULT false NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"attempt_log" text DEFAULT '[]' NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"give_up_at" timestamp with time zone NOT NULL,
	"next_attempt_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	CONSTRAINT "webhook_delivery_status" CHECK ("webhook_delivery"."status" in ('pending', 'delivered', 'failed'))
);
--> statement-breakpoint
CREATE TABLE "webhook_endpoint" (
	"id" text PRIMARY KEY NOT NULL,
	"owner_id" uuid NOT NULL,
	"scope" text NOT NULL,
	"name" text NOT NULL,
	"url" text NOT NULL,
	"event_types" text NOT NULL,
	"secret" text NOT NULL,
	"secret_hint" text NOT NULL,
	"previous_secret" text,
	"previous_until" timestamp with time zone,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "webhook_endpoint_scope" CHECK ("webhook_endpoint"."scope" in ('user', 'organization'))
);
--> statement-breakpoint
ALTER TABLE "response" ADD COLUMN "webhook_due" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "batch_line" ADD CONSTRAINT "batch_line_batch_id_batch_id_fk" FOREIGN KEY ("batch_id") REFERENCES "public"."batch"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_endpoint_id_webhook_endpoint_id_fk" FOREIGN KEY ("endpoint_id") REFERENCES "public"."webhook_endpoint"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "batch_owner" ON "batch" USING btree ("owner_id","created_at","id");--> statement-breakpoint
CREATE INDEX "batch_open" ON "batch" USING btree ("expires_at") WHERE "batch"."ended_at" is null;--> statement-breakpoint
CREATE INDEX "batch_ended" ON "batch" USING btree ("ended_at") WHERE "batch"."ended_at" is not null;--> statement-breakpoint
CREATE INDEX "batch_input_sha256" ON "batch" USING btree ("input_sha256");--> statement-breakpoint
CREATE INDEX "batch_results_sha256" ON "batch" USING btree ("results_sha256") WHERE "batch"."results_sha256" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "batch_line_custom_id" ON "batch_line" USING btree ("batch_id","custom_id");--> statement-breakpoint
CREATE INDEX "batch_line_unanswered" ON "batch_line" USING btree ("batch_id","slot","line") WHERE "batch_line"."answer" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "webhook_delivery_event" ON "webhook_delivery" USING btree ("endpoint_id","event_id");--> statement-breakpoint
CREATE INDEX "webhook_delivery_endpoint" ON "webhook_delivery" USING btree ("endpoint_id","created_at","id");--> statement-breakpoint
CREATE INDEX "webhook_delivery_ended" ON "webhook_delivery" USING btree ("ended_at") WHERE "webhook_delivery"."ended_at" is not null;--> statement-breakpoint
CREATE INDEX "webhook_endpoint_owner" ON "webhook_endpoint" USING btree ("owner_id","created_at","id");--> statement-breakpoint
CREATE INDEX "webhook_endpoint_organization" ON "webhook_endpoint" USING btree ("created_at","id") WHERE "webhook_endpoint"."scope" = 'organization';--> statement-breakpoint
CREATE INDEX "response_webhook_due" ON "response" USING btree ("ended_at") WHERE "response"."webhook_due";