import { currencyDecimals } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { amountShapeProblem } from "./amount.ts";
import type { CompletionRequest } from "./completion.ts";
import { broken } from "./rules.ts";

const quantities = ["quantity", "saleQuantity", "voidQuantity"] as const;
const totals = ["saleTotalAmount", "voidTotalAmount", "totalAmount"] as const;
/** Without these a partner cannot reconcile; the others follow from them. */
const requiredOfSuccess = ["saleQuantity", "saleTotalAmount", "voidQuantity"] as const;

const quantityPattern = /^(?:0|[1-9]\d{0,8})$/;

/** Checks the totals of a reported Settlement, individually and for consistency. */
export function settlementProblems(settlement: CompletionRequest): FieldProblem[] {
  const problems = [...quantityProblems(settlement), ...totalProblems(settlement)];
  if (settlement.status === "SUCCESS") {
    const required =
      settlement.voidQuantity === "0" ? requiredOfSuccess : ([...requiredOfSuccess, "voidTotalAmount"] as const);
    const missing = required.filter((name) => (settlement[name] ?? "") === "");
    problems.push(
      ...missing.map((name) => broken(name, "missing_field", "is required of a settlement that succeeded")),
    );
  }
  return problems.length > 0 ? problems : countProblems(settlement);
}

function quantityProblems(settlement: CompletionRequest): FieldProblem[] {
  return quantities.flatMap((name) => {
    const value = settlement[name] ?? "";
    return value === "" || quantityPattern.test(value)
      ? []
      : [broken(name, "invalid_value", "must be a whole number without leading zeros, at most 999999999")];
  });
}

function totalProblems(settlement: CompletionRequest): FieldProblem[] {
  const decimals = currencyDecimals(settlement.currency ?? "");
  return totals.flatMap((name) => {
    const value = settlement[name] ?? "";
    const problem = value === "" ? undefined : amountShapeProblem(value, decimals);
    return problem === undefined ? [] : [broken(name, "invalid_amount", problem)];
  });
}

/**
 * Section 2.3: quantity is the number of Sales minus that of Voids, and the list contains exactly those that are not
 * voided. A voided Sale counts on both sides, so there are never more Voids than Sales.
 */
function countProblems(settlement: CompletionRequest): FieldProblem[] {
  const { quantity = "", saleQuantity = "", voidQuantity = "", settlementList, status } = settlement;
  if (saleQuantity === "" || voidQuantity === "") return [];
  const counted = Number(saleQuantity) - Number(voidQuantity);
  if (counted < 0) {
    return [broken("voidQuantity", "invalid_value", "must be at most saleQuantity, which includes the voided ones")];
  }
  if (quantity !== "" && Number(quantity) !== counted) {
    return [broken("quantity", "invalid_value", `must be saleQuantity less voidQuantity, ${counted}`)];
  }
  if (status !== "SUCCESS" || settlementList === undefined || settlementList.length === counted) return [];
  const rule = `must list the ${counted} transactions of quantity, found ${settlementList.length}`;
  return [broken("settlementList", "invalid_value", rule)];
}
